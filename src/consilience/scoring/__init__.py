"""What a judgement was worth: one number per case here, summaries apart in `consilience.scoring.summaries`."""

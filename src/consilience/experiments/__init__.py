"""One arm over many questions: fixed beforehand, run, resumed, replayed and evaluated."""

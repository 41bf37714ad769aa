"""Pictures of the viewer as SVG: for pages they are images, so nothing in them can act."""

"""Pictures as plain SVG, for pages and notebooks: five shapes, shown as images, so nothing in them can act."""

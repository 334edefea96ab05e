"""Pictures of the notebooks, drawn by code: a map of the library, curves, paths over contours."""

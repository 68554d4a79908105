"""What a layer is, and a layer as operators for the judge."""

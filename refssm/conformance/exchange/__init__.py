"""Programs in any language: arguments and answers are .npy files in a folder, one for each case."""

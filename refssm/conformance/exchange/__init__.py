"""Programs in any language: one folder per case, with arguments and outputs as .npy files."""

"""What every other folder of data_beam builds on: records, files, stage contexts."""

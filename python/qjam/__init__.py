"""The names that programs written for qjam import; shoal.qjam has what is behind them."""

"""PaddlePaddle's model files: ``.pdmodel`` and ``.pdiparams`` read and written, Paddle 3's ``.json`` read."""

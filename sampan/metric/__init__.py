"""Metrics: accuracy, precision, recall, area under a curve, and the base for one's own."""

from .metrics import Accuracy, Auc, Metric, Precision, Recall, accuracy

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]

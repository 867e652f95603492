"""Models in forms that other programs read: scikit-learn, ONNX, SQL, JSON, CSV, VW, tables."""

"""What is measured: servers as an operator starts them, each in processes of its own."""

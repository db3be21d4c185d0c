"""What operators see and change while meetings go on, at an address of its own."""

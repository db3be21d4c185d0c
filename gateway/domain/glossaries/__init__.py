"""What tenants keep to have their terms translated as they want."""

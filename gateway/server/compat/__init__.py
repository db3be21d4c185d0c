"""APIs of other translation services, so that programs written for them work with a gateway."""

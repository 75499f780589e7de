"""The rules behind JobSet's own webhooks, as far as a gang meets them."""

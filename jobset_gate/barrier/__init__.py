"""Rules of the start barrier: snapshot types, decoding, counting, decisions, texts. Pure."""

"""The version of the package, which is that of the library it was written for; a test compares it with the
program's."""
version = "0.1.0"

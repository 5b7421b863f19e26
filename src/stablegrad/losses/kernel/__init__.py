"""The compiled kernels: C sources that know no framework, and how they are built and found."""

"""One file a peer: how it is asked for a product. gemm_peers.peer has the contract."""

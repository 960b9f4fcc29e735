//! What every manager needs: transactions with window, timeout and retry, directed-route paths

/** How long tests wait for what has to come: only a hang reaches it, however busy the machine is. */
export const PATIENCE_MS = 180_000;
/** How long a test may take, which waits for one thing after the other. */
export const TEST_MS = 2 * PATIENCE_MS;

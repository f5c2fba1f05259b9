/** Starts what all test files share; each part is started only where a test asks for it. */
export default function setup(): void {}

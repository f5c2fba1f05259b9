declare module 'virtual:lucide' {
  /** The build refuses names that Lucide does not have. */
  const shapes: Readonly<Record<string, string>>;
  export = shapes;
}

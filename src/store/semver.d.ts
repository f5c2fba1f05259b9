/** Of `semver`, what is used here: its types would be a package of their own. */
declare module 'semver/functions/gt.js' {
  /** Whether a release is later than another one. Throws on what is no version. */
  export default function gt(release: string, other: string): boolean;
}

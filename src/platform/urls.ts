/** URLs that people have written: users, queries and fragments in them may be secrets, such as the signature of a URL that was signed for others. */

/** Without what may be secret in it: user, query, fragment. */
export function shownUrl(location: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(location)) return location;
  try {
    const url = new URL(location);
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return location.replace(/[?#].*$/s, '').replace(/\/\/[^/@]*@/, '//');
  }
}

/** Whether a location is fetched, and sent to, by HTTP. */
export const isHttp = (location: string): boolean => /^https?:/i.test(location);

/** What is accepted instead of a URL that agents cannot fetch from or send to; null: it is one. */
export function httpUrlFault(url: string, charsMax: number): string | null {
  if (url.length > charsMax) return `up to ${charsMax} characters`;
  if (/^s3:/i.test(url))
    return 'http:// or https://, such as a presigned URL of the object: agents have no keys of stores';
  return isHttp(url) && URL.canParse(url) ? null : 'an absolute URL that begins with http:// or https://';
}

/** The URL of a file below a directory. The query stays. */
export function urlBelow(directory: string, path: string): string {
  const url = new URL(directory);
  const below = path.split('/').map(encodeURIComponent).join('/');
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${below}`;
  return url.href;
}

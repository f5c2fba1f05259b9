/** Where a lock file has the packages that `npm start` installs. */
export function packagesToStart(packages: object): string[];

interface Change {
  file: string;
  find: string;
  replace: string;
}

export const mutants: readonly (Change & { what: string; also?: Change })[];

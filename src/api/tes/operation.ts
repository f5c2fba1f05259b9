/** Operations of GraphQL that the service runs for its other doors. */

/** The text of an operation; its type is what it answers and asks for (`npm run codegen`). */
export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };

/** Runs one for whoever asks. Throws the first of its errors. */
export type Ask = <Answer, Variables extends object>(
  document: Document<Answer, Variables>,
  variables: NoInfer<Variables>,
) => Promise<Answer>;

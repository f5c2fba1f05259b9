/**
 * Signing in by password, before anybody is known. A request is JSON, which no page of another site can send without having asked (CORS);
 * the answer is a secret for the `Authorization` header, never a cookie.
 *
 * POST /sign-in/password { user, password } → { secret, session, user, expiresAt }
 * POST /sign-in/invitation { invitation } → { user, expiresAt }: whom it is for
 * POST /sign-in/invitation { invitation, password } → as the first: sets the password, and signs in
 */
import { z } from 'zod';
import { ApiError } from './errors.js';
import { globalId } from './ids.js';
import type { Services } from './services/index.js';
import type { Begun, Stranger } from './services/sign-in.js';

export const SIGN_IN_PATH = '/sign-in';
export const SIGN_IN_BYTES_MAX = 4_096;

type SignIn = Services['signIn'];

const secret = z.string().max(1_000);
// PostgreSQL keeps no NUL, so no name has one.
const name = z.string().regex(/^[^\0]{1,100}$/);
const byPassword = z.strictObject({ user: name, password: secret });
const byInvitation = z.strictObject({ invitation: secret, password: secret.optional() });

/** What is answered to the body of a request, by its address. */
export const SIGN_IN: Readonly<
  Record<string, (signIn: SignIn, body: unknown, from: Stranger) => Promise<object>>
> = {
  async '/password'(signIn, body, from) {
    const { user, password } = parsed(byPassword, body, '{ "user": "…", "password": "…" }');
    return shown(await signIn.byPassword(user, password, from));
  },
  async '/invitation'(signIn, body, from) {
    const form = '{ "invitation": "…" }, and "password": "…" to set it';
    const { invitation, password } = parsed(byInvitation, body, form);
    if (password !== undefined) return shown(await signIn.byInvitation(invitation, password, from));
    const { user, expiresAt } = await signIn.invitation(invitation, from);
    return { user: user.name, expiresAt: time(expiresAt) };
  },
};

/** The body is not repeated: it has secrets. */
function parsed<T>(form: z.ZodType<T>, body: unknown, shown: string): T {
  const { success, data } = form.safeParse(body);
  if (!success) throw new ApiError('BAD_USER_INPUT', `the body is not accepted; accepted: ${shown}`);
  return data;
}

const shown = ({ user, sessionId, secret, expiresAt }: Begun) => ({
  secret,
  session: globalId('session', sessionId),
  user: user.name,
  expiresAt: time(expiresAt),
});

const time = (atS: number): string => new Date(atS * 1000).toISOString();

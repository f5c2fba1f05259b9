/** A link at which a user sets a password: made, and shown once. */

import { useState } from 'react';
import { useAction } from '../api/data';
import { Button, Dialog } from '../ui/controls';
import { copy } from '../ui/copy';
import { Copy } from '../ui/icons';
import { At } from '../ui/show';
import { told } from '../ui/toast';
import { InviteUserDocument } from './invitation.gql';

export interface Invitation {
  id: string;
  name: string;
  link: string;
  until: string;
}

export function useInvitation(): { busy: boolean; invite(user: string): Promise<Invitation> } {
  const { busy, run } = useAction(InviteUserDocument);
  return {
    busy,
    async invite(user) {
      const { inviteUser } = await run({ input: { userId: user } });
      const { invitation, expiresAt } = inviteUser;
      return { ...inviteUser.user, link: `${location.origin}/#invitation=${invitation}`, until: expiresAt };
    },
  };
}

/** @param reset whether the user has a password */
export function InviteDialog({
  user,
  reset,
  onClose,
}: {
  user: { id: string; name: string };
  reset: boolean;
  onClose(): void;
}) {
  const { busy, invite } = useInvitation();
  const [made, setMade] = useState<Invitation | null>(null);
  return (
    <Dialog
      title={reset ? `Reset the password of ${user.name}` : `Invite ${user.name}`}
      open
      onClose={onClose}
      footer={
        made ? (
          <>
            <Button icon={<Copy size={14} />} onPress={() => copy(made.link)}>
              Copy
            </Button>
            <Button variant="primary" onPress={onClose}>
              I have sent it
            </Button>
          </>
        ) : (
          <Button
            variant="primary"
            isDisabled={busy}
            onPress={() => void told(invite(user.id)).then((done) => done && setMade(done))}
          >
            Create the link
          </Button>
        )
      }
    >
      {made ? (
        <>
          <p>
            Send this link to {user.name}, and to no one else. It works once, until{' '}
            <At at={made.until} seconds={false} />, and is shown only once.
          </p>
          <code className="secret">{made.link}</code>
        </>
      ) : (
        <p>
          You get a link with which {user.name} sets a password. It works once, within 7 days.{' '}
          {reset && 'Until then nothing changes; setting it ends all sessions of the user. '}Earlier links no
          longer work.
        </p>
      )}
    </Dialog>
  );
}

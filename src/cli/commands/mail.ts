/** `switchyard mail`: what one gets mail about, and where. */
import type { Command } from 'commander';
import { MAIL_KINDS, mailKinds } from '../../words/index.js';
import { addCommand, collect, findUser, show } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';

type User = documents.MailFieldsFragment;

export function addMail(program: Command): void {
  const mail = addCommand(program, 'mail', 'show or set the kinds of mail that you get')
    .option('--on <kinds>', `for all jobs that do not say otherwise: ${MAIL_KINDS.join(', ')}, none`, collect)
    .option('--user <user>', 'show the mail of this user, or set its address (ADMIN)')
    .option('--address <address>', 'where mail for --user is sent; none: nowhere (ADMIN)');
  mail.action(async ({ on, user, address }: { on?: string[]; user?: string; address?: string }) => {
    const client = connect();
    if (user === undefined) {
      if (address !== undefined) throw new CliError('--address needs --user', ExitCode.USAGE);
      const own = on
        ? (await client.request(documents.SetMailDocument, { kinds: mailKinds(on.join(), '--on') })).setMail
            .user
        : (await client.request(documents.OwnMailDocument, {})).viewer;
      return show(mail, own, shown);
    }
    const { id } = await findUser(client, user);
    if (address !== undefined) {
      const variables = { user: id, address: address === 'none' ? null : address };
      const { setMailAddress } = await client.request(documents.SetMailAddressDocument, variables);
      return show(mail, setMailAddress.user, shown);
    }
    const { node } = await client.request(documents.UserMailDocument, { id });
    show(mail, node as User, shown);
  });
}

function shown({ name, mail }: User): string {
  if (mail === null || mail === undefined) return `You may not see the mail settings of ${name}.`;
  const { address, kinds, unsubscribed, problem } = mail;
  const aboutJobs = kinds.some((kind) => kind !== 'RESERVATION');
  return [
    `address       ${address ?? 'none; an administrator can set it'}`,
    `about         ${kinds.join(', ') || 'nothing'}${aboutJobs ? '' : '; jobs only if they say so'}`,
    ...(unsubscribed.length > 0 ? [`unsubscribed  ${unsubscribed.join(', ')}`] : []),
    ...(problem ? [`problem       ${problem}`] : []),
  ].join('\n');
}

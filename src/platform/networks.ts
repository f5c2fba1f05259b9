import { BlockList, isIP } from 'node:net';

/** Addresses and networks in CIDR notation (`10.0.0.0/8`), to be asked whether an address is among them. */
export function networks(written: readonly string[]): BlockList {
  const list = new BlockList();
  for (const one of written) {
    const [address, bits] = one.split('/') as [string, string?];
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

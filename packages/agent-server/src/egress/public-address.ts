import ipaddr from 'ipaddr.js'

/**
 * Ranges that `ipaddr.js` counts as ordinary but that lead back to this host, its network, or through a translator to either. The rest of what is
 * refused are all ranges that it does not call `unicast`.
 */
const refused = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's platform address: answers with the machine's settings from a public range.
  '168.63.129.16/32',
  '::/96',
  '::ffff:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2001::/32',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
].map((range) => ipaddr.parseCIDR(range))

/** Whether a literal address is one of the public internet's: never private, loopback, link-local, metadata or mapped. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text) || text.includes('%')) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return !refused.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
}

import ipaddr from 'ipaddr.js'

/**
 * Ranges that `ipaddr.js` counts as ordinary but that lead back to this host, its network, or through a translator to either. The rest of what is
 * refused are all ranges that it does not call `unicast`. The ranges that matter most stand here too, whatever the library says of them.
 */
const refused = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  // The relays of 6to4.
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's platform address: answers with the machine's settings from a public range.
  '168.63.129.16/32',
  // Teredo, ORCHID, benchmarks and what else is set aside for protocols.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
].map((range) => ipaddr.parseCIDR(range))

/** All that is given out of version 6 for the public internet; the rest is local, mapped, translated, multicast or nobody's. */
const global6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether a literal address is one of the public internet's: never private, loopback, link-local, metadata, multicast, reserved, or one
 * that holds another address (mapped, NAT64, 6to4, Teredo), even a public one. False for every other text, also for numbers in
 * spellings that only some programs read (SEC-04).
 */
export function isPublicAddress(text: string): boolean {
  const four = ipaddr.IPv4.isValidFourPartDecimal(text)
  if (!four && (!ipaddr.IPv6.isValid(text) || text.includes('%'))) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv6 && !address.match(global6)) return false
  return !refused.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
}

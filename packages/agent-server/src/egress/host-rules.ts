import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { TuttiError } from '@tutti/core'

/** Decides by name and port alone; what the name resolves to is checked after that. */
export type HostRules = (name: string, port: number) => boolean

const defaultPorts: readonly number[] = [80, 443]
const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/

/**
 * Rules from `--allow-host` entries: `example.com`, `*.example.com` (every name below it, not itself), either with `:port`. Without a port
 * they mean 80 and 443.
 *
 * @throws TuttiError `invalid_argument` for an address (only names can be allowed), a bare `*`, or what is no name.
 */
export function parseHostRules(entries: readonly string[]): HostRules {
  const rules = entries.map(parseRule)
  return (name, port) => {
    const plain = plainName(name)
    return rules.some(
      (rule) =>
        rule.ports.includes(port) && (rule.below ? plain.endsWith(`.${rule.name}`) : plain === rule.name),
    )
  }
}

/** A name as it is compared: lower case, ASCII, without the final dot. Empty when it is none. */
export const plainName = (name: string): string =>
  domainToASCII(name.endsWith('.') ? name.slice(0, -1) : name)

function parseRule(entry: string): { name: string; below: boolean; ports: readonly number[] } {
  const [, wildcard, host = '', port] = /^(\*\.)?([^:/@]+)(?::(\d{1,5}))?$/.exec(entry) ?? []
  const name = plainName(host)
  const ports = port === undefined ? defaultPorts : [Number(port)]
  const isName = name !== '' && isIP(name) === 0 && name.split('.').every((part) => label.test(part))
  if (!isName || ports.some((number) => number < 1 || number > 65_535)) {
    throw new TuttiError(
      'invalid_argument',
      `${entry} cannot be allowed: give a host name such as example.com, *.example.com or example.com:8443.`,
      { field: 'sandbox.allow_hosts', value: entry },
    )
  }
  return { name, below: wildcard !== undefined, ports }
}

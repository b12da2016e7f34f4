import { lookup } from 'node:dns/promises'
import { isAbsolute, normalize } from 'node:path'
import { TuttiError, throwIfCancelled, orCancelled, hasDeceptive } from '@tutti/core'
import ipaddr from 'ipaddr.js'
import type { Protocol } from './hardened.ts'
import { isPublicAddress } from './public-address.ts'

/** Where a repository is, checked. `address` is what git gets and what names the mirror. */
export interface Location {
  readonly address: string
  readonly protocol: Protocol
  readonly host?: string
  readonly port?: number
}

const maxLength = 2048

/**
 * Reads a location: an absolute path of a local repository (the caller has checked that it is registered, design §11.15), or
 * an https or ssh address, also in the form `user@host:path`. Everything else is refused before a process starts (SEC-04).
 *
 * @throws TuttiError `invalid_argument`.
 */
export function parseLocation(location: string): Location {
  if (location === '' || location.length > maxLength) return refuse('it is empty or too long')
  if (hasDeceptive(location)) return refuse('it has control or invisible characters')
  if (isAbsolute(location))
    return { address: normalize(location).replace(/(?<=.)\/+$/, ''), protocol: 'file' }
  if (/^https:\/\//i.test(location)) return parseHttps(location)
  if (/^ssh:\/\//i.test(location)) return parseSsh(location)
  const short = /^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9.-]+):(?!\/\/)([^:]+)$/.exec(location)
  if (short) {
    const [, user = '', host = '', path = ''] = short
    if (path.startsWith('-')) return refuse('its path starts with a dash')
    // Kept in this form: its path counts from the user's home, which an address of the form ssh:// cannot say everywhere.
    return { ...parseSsh(`ssh://${user}@${host}/x`), address: `${user}@${host}:${path}` }
  }
  return refuse('use an https or ssh address, or register the local path')
}

function parseHttps(location: string): Location {
  if (!URL.canParse(location)) return refuse('it is not an address')
  const url = new URL(location)
  if (url.username !== '' || url.password !== '') return refuse('it must not hold a user name or password')
  if (url.search !== '' || url.hash !== '') return refuse('it must not have a query or fragment')
  if (url.pathname === '/' || url.pathname === '') return refuse('it names no repository')
  refuseHost(url.hostname)
  return {
    address: url.href.replace(/\/+$/, ''),
    protocol: 'https',
    host: url.hostname,
    port: Number(url.port || 443),
  }
}

function parseSsh(location: string): Location {
  const parts =
    /^ssh:\/\/(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?(\/[^-].*)$/i.exec(
      location,
    )
  if (!parts) return refuse('use ssh://user@host/path')
  const [, user, rawHost = '', port, path = ''] = parts
  // As a web address, so that numbers in other bases become what they mean.
  if (!URL.canParse(`https://${rawHost}/`)) return refuse('its host is not a name')
  const host = new URL(`https://${rawHost}/`).hostname
  refuseHost(host)
  return {
    address: `ssh://${user === undefined ? '' : `${user}@`}${host}${port === undefined ? '' : `:${port}`}${path.replace(/\/+$/, '')}`,
    protocol: 'ssh',
    host,
  }
}

/** Hosts of our own machine and network are no repositories to be named from outside (SEC-04). */
function refuseHost(hostname: string): void {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (host === 'localhost' || host.endsWith('.localhost') || host.endsWith('.internal'))
    refuse('its host is this machine')
  if (ipaddr.isValid(host) && !isPublicAddress(host)) refuse('its host is a private or reserved address')
}

/**
 * Asks the name server once and pins git to the answer, so that a name cannot lead inside, not even by a second answer.
 *
 * @returns configuration for the git command.
 * @throws TuttiError `invalid_argument` when the name leads to a private address; `unavailable` when it leads nowhere.
 */
export async function pinHost(
  { protocol, host, port }: Location,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (host === undefined || ipaddr.isValid(host.replace(/^\[|\]$/g, ''))) return []
  // Behind a proxy the proxy resolves, and this machine may have no name server at all.
  if (protocol === 'https' && (process.env['HTTPS_PROXY'] ?? process.env['https_proxy'])) return []
  const answers = await orCancelled(lookup(host, { all: true }), signal).catch((cause: unknown) => {
    throwIfCancelled(signal)
    throw new TuttiError(
      'unavailable',
      `The host ${host} could not be found; check the repository's address.`,
      { host },
      cause,
    )
  })
  if (answers.some(({ address }) => !isPublicAddress(address)))
    refuse('its host leads to a private or reserved address')
  if (protocol !== 'https') return []
  return [`http.curloptResolve=${host}:${port ?? 443}:${answers.map(({ address }) => address).join(',')}`]
}

function refuse(why: string): never {
  throw new TuttiError('invalid_argument', `The repository's location is refused: ${why}.`, {
    field: 'repository',
  })
}

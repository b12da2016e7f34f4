import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'

import { TuttiError } from '@tutti/core'

/** Who calls, as far as the transport can tell. */
export interface Caller {
  readonly owner: string
  /** The request came over loopback with the data folder's own key: whoever sent it can read our files anyway. */
  readonly local: boolean
}

export interface GuardOptions {
  readonly localKey: string
  readonly apiKeys: readonly string[]
  readonly owner: string
  /** Host and port that the server listens on. */
  readonly host: string
  readonly port: number
}

/** The part of a request that the guard looks at. */
export interface GuardedRequest {
  readonly path: string
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly authorization: string | undefined
  readonly remoteAddress: string | undefined
}

/** Answered without a key: they tell nothing but that the process lives and is ready. */
export const publicPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz'])

/**
 * Lets a request in or says why not (design §10): no web page can drive the server, since it neither knows a key nor has our
 * origin, and a name that an attacker points at loopback is not one of ours.
 *
 * @returns the caller; undefined on a public path.
 * @throws TuttiError `permission_denied` for a foreign Host or Origin; `unauthenticated` without a valid key.
 */
export function admitRequest(options: GuardOptions, request: GuardedRequest): Caller | undefined {
  const { host, port, localKey, apiKeys, owner } = options
  const names = hostNames(host, port)
  if (isLoopback(host) && !names.has((request.host ?? '').toLowerCase())) {
    throw new TuttiError('permission_denied', `This server answers to ${[...names].join(', ')} only.`, {
      header: 'Host',
    })
  }
  if (request.origin !== undefined && !isOwnOrigin(request.origin, names)) {
    throw new TuttiError('permission_denied', 'Requests from other web pages are not allowed.', {
      header: 'Origin',
    })
  }
  if (publicPaths.has(request.path)) return undefined
  const [scheme = '', key = ''] = (request.authorization ?? '').split(' ', 2)
  const given = scheme.toLowerCase() === 'bearer' ? key : ''
  // All keys are compared, so that the time taken says nothing about which one was nearly right.
  const matches = [localKey, ...apiKeys].map((known) => sameText(known, given))
  if (!matches.includes(true)) {
    throw new TuttiError(
      'unauthenticated',
      'A key is needed: "Authorization: Bearer KEY". The local one is in the data folder, in the file "local-key".',
    )
  }
  return { owner, local: matches[0] === true && isLoopback(request.remoteAddress ?? '') }
}

/** @throws TuttiError `failed_precondition` when others could reach a server that only the local key protects. */
export function assertMayListen(host: string, apiKeys: readonly string[]): void {
  if (isLoopback(host) || apiKeys.length > 0) return
  throw new TuttiError(
    'failed_precondition',
    `Refusing to listen on ${host}: beyond loopback, API keys are needed. Set TUTTI_API_KEYS (server.api_keys), or listen on 127.0.0.1.`,
    { setting: 'server.api_keys' },
  )
}

export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').replace(/^::ffff:/, '')
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

function hostNames(host: string, port: number): Set<string> {
  const own = isIP(host) === 6 ? `[${host}]` : host
  return new Set(['localhost', '127.0.0.1', '[::1]', own.toLowerCase()].map((name) => `${name}:${port}`))
}

function isOwnOrigin(origin: string, names: ReadonlySet<string>): boolean {
  const [scheme, host = ''] = origin.toLowerCase().split('://', 2)
  return scheme === 'http' && names.has(host)
}

function sameText(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return left !== '' && timingSafeEqual(digest(left), digest(right))
}

import type { ServerResponse } from 'node:http'
import type { SignedRequest } from '@tutti/blob-store'

/**
 * Sends a client to the store itself: 307, so that its method stays. The body says with which headers, since a client that follows by
 * itself may know none of them. Nobody may keep it: it is a key.
 */
export function redirect(
  response: ServerResponse,
  to: SignedRequest,
  more: { readonly confirm?: string } = {},
): void {
  const { method, url, headers, expiresAt } = to
  response.writeHead(307, {
    location: url,
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(JSON.stringify({ method, url, headers, expires_at_ms: expiresAt, ...more }))
}

import type { TLSConfig } from '@temporalio/client'

/** How a Temporal cluster is reached beyond its address, by clients and workers alike. Empty for a server without TLS and keys. */
export interface TemporalAccess {
  /** `true`: TLS with the system's authorities. */
  readonly tls?: TLSConfig | boolean
  /** Sent as bearer token with each call. */
  readonly apiKey?: string
  /** More headers of each call. */
  readonly metadata?: Record<string, string>
}

import { loadClientConfigProfile, toClientOptions } from '@temporalio/envconfig'
import { TuttiError } from '@tutti/core'
import type { TemporalAccess } from '@tutti/worker'

/** Two of these go together: one alone would be passed over in silence. */
const pairs = [
  ['TEMPORAL_TLS_CLIENT_CERT_PATH', 'TEMPORAL_TLS_CLIENT_CERT_DATA'],
  ['TEMPORAL_TLS_CLIENT_KEY_PATH', 'TEMPORAL_TLS_CLIENT_KEY_DATA'],
] as const

/**
 * How to reach a cluster elsewhere, from the variables that the Temporal CLI and the official SDKs read: TEMPORAL_NAMESPACE,
 * TEMPORAL_API_KEY (switches TLS on), TEMPORAL_TLS, TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH,
 * TEMPORAL_TLS_SERVER_CA_CERT_PATH (or TEMPORAL_TLS_SERVER_CA_CERT_DATA; likewise for both others), TEMPORAL_TLS_SERVER_NAME and
 * TEMPORAL_GRPC_META_…. A file is read only when TEMPORAL_CONFIG_FILE or TEMPORAL_PROFILE asks for one: what lies in somebody's
 * home for another purpose must not change a server.
 *
 * @throws TuttiError `invalid_argument` when a file cannot be read or variables contradict one another.
 */
export function readTemporalAccess(env: Readonly<Record<string, string | undefined>>): {
  readonly namespace?: string
  readonly access: TemporalAccess
} {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value)) as Record<string, string>
  const isSet = pairs.map((names) => names.some((name) => name in set))
  if (isSet[0] !== isSet[1])
    throw refuse(`${pairs[isSet[0] ? 1 : 0].join(' or ')} is missing: a client certificate needs its key.`)
  if (isTrue(set['TEMPORAL_TLS_DISABLE_HOST_VERIFICATION'])) {
    throw refuse(
      'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION is not supported. Name the authority with TEMPORAL_TLS_SERVER_CA_CERT_PATH, and the name in the certificate with TEMPORAL_TLS_SERVER_NAME.',
    )
  }
  try {
    const profile = loadClientConfigProfile({
      overrideEnvVars: set,
      disableFile: !('TEMPORAL_CONFIG_FILE' in set || 'TEMPORAL_PROFILE' in set),
    })
    const { namespace, connectionOptions } = toClientOptions(profile)
    const { tls, apiKey, metadata } = connectionOptions as TemporalAccess
    return {
      ...(namespace && { namespace }),
      access: {
        ...(tls != null && { tls }),
        ...(apiKey !== undefined && { apiKey }),
        ...(metadata !== undefined && { metadata }),
      },
    }
  } catch (error) {
    throw refuse(
      `The TEMPORAL_ variables cannot be used: ${error instanceof Error ? error.message : String(error)}. Correct or unset the one that is meant.`,
      error,
    )
  }
}

const isTrue = (text: string | undefined): boolean => text === '1' || text === 'true'

const refuse = (message: string, cause?: unknown): TuttiError =>
  new TuttiError('invalid_argument', message, { field: 'TEMPORAL_*' }, cause)

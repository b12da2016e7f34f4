import type { S3Failure } from './s3-failure.ts'
import type { S3Settings } from './s3-settings.ts'

export type S3Place = Pick<S3Settings, 'bucket' | 'where'>

interface Explanation {
  readonly reason: string
  readonly when: (failure: S3Failure) => boolean
  readonly text: (place: S3Place, what: string) => string
}

const named =
  (...names: readonly string[]) =>
  ({ name }: S3Failure) =>
    names.includes(name)

/** The first that fits is told. */
export const s3Explanations: readonly Explanation[] = [
  {
    reason: 'no_such_bucket',
    when: named('NoSuchBucket'),
    text: ({ bucket, where }) =>
      `There is no bucket "${bucket}" at ${where}. Create it, or correct its name.`,
  },
  {
    reason: 'bad_credentials',
    when: named(
      'InvalidAccessKeyId',
      'SignatureDoesNotMatch',
      'ExpiredToken',
      'InvalidToken',
      'InvalidSecurity',
      'ExpiredTokenException',
    ),
    text: ({ bucket, where }, what) =>
      `${where} does not accept the credentials for bucket "${bucket}" (${what}). Correct or renew the access key.`,
  },
  {
    reason: 'no_credentials',
    when: named('CredentialsProviderError'),
    text: ({ bucket, where }) =>
      `There are no credentials for bucket "${bucket}" at ${where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role.`,
  },
  {
    reason: 'no_region',
    when: named('RegionMissing'),
    text: ({ bucket, where }) =>
      `Nothing says in which region bucket "${bucket}" of ${where} is. Set its region, or AWS_REGION.`,
  },
  {
    reason: 'wrong_region',
    when: ({ name, status }) =>
      status === 301 ||
      ['AuthorizationHeaderMalformed', 'IllegalLocationConstraintException', 'PermanentRedirect'].includes(
        name,
      ),
    text: ({ bucket, where }, what) =>
      `Bucket "${bucket}" is in another region than was asked at ${where} (${what}). Set its region.`,
  },
  {
    reason: 'wrong_time',
    when: named('RequestTimeTooSkewed'),
    text: ({ where }) => `${where} says that the clock of this machine is wrong. Set it.`,
  },
  {
    reason: 'full',
    when: ({ name, status }) => status === 507 || /QuotaExceeded|StorageFull|InsufficientStorage/.test(name),
    text: ({ bucket, where }, what) =>
      `Bucket "${bucket}" at ${where} is full (${what}). Make room or raise its quota, then try again.`,
  },
  {
    reason: 'not_supported',
    when: ({ name, status }) => status === 501 || name === 'NotImplemented',
    text: ({ where }, what) =>
      `${where} does not do what was asked of it (${what}). docs/operations.md, "Object stores", says what to set for such a server.`,
  },
  {
    reason: 'access_denied',
    when: ({ status }) => status === 401 || status === 403,
    text: ({ bucket, where }, what) =>
      `${where} refuses access to bucket "${bucket}" (${what}). Allow these credentials s3:ListBucket on it, and s3:GetObject, s3:PutObject and s3:AbortMultipartUpload on its objects.`,
  },
  {
    reason: 'overloaded',
    when: ({ name, status }) =>
      status === 429 || status === 503 || /^SlowDown$|Throttling|TooMany/.test(name),
    text: ({ bucket, where }, what) =>
      `${where} takes no more requests for bucket "${bucket}" now (${what}). Try again later; fewer agents at once ask for less.`,
  },
  {
    reason: 'damaged_in_transit',
    when: named('BadDigest', 'XAmzContentChecksumMismatch', 'XAmzContentSHA256Mismatch'),
    text: ({ where }, what) =>
      `Bytes arrive damaged at ${where} (${what}). Look at the network between, or use https, then try again.`,
  },
  {
    reason: 'unreachable',
    when: ({ status, code, name }) => status === undefined && (code !== '' || name === 'TimeoutError'),
    text: ({ bucket, where }, what) =>
      `${where} does not answer (${what}), so bucket "${bucket}" cannot be used. Check its address and that it runs, then try again.`,
  },
]

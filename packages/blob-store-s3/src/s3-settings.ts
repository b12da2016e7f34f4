import { tmpdir } from 'node:os'
import { TuttiError, type BlobId } from '@tutti/core'
import { defaultS3Limits, type S3Limits } from './s3-limits.ts'
import type { S3BlobStoreOptions } from './s3-options.ts'

/** Options that were checked, with their defaults. */
export interface S3Settings {
  readonly bucket: string
  /** Everything of ours is below it. Empty, or ends with a slash. */
  readonly prefix: string
  /** That of the blobs. Ends with a slash. */
  readonly folder: string
  /** For people: never has a secret in it. */
  readonly where: string
  readonly endpoint: string | undefined
  readonly publicEndpoint: string | undefined
  readonly region: string | undefined
  readonly pathStyle: boolean
  readonly credentials: S3BlobStoreOptions['credentials']
  readonly conditionalWrites: boolean
  readonly temporaryFolder: string
  readonly limits: S3Limits
  keyOf(id: BlobId): string
}

/** @throws TuttiError `invalid_argument` that names the option. */
export function s3Settings(options: S3BlobStoreOptions): S3Settings {
  const { bucket, region } = options
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(bucket)) {
    throw refused('bucket', 'Name a bucket: 3 or more letters, digits, dots and hyphens.')
  }
  const endpoint = checkEndpoint('endpoint', options.endpoint)
  const publicEndpoint = checkEndpoint('publicEndpoint', options.publicEndpoint)
  const named = checkPrefix(options.prefix ?? '')
  const prefix = `${named}${named && '/'}`
  const folder = `${prefix}files/`
  return {
    bucket,
    prefix,
    folder,
    where: endpoint ?? `AWS S3${region ? ` in ${region}` : ''}`,
    endpoint,
    publicEndpoint,
    region: region ?? (endpoint ? 'us-east-1' : undefined),
    pathStyle: options.pathStyle ?? endpoint !== undefined,
    credentials: options.credentials,
    conditionalWrites: options.conditionalWrites ?? true,
    temporaryFolder: options.temporaryFolder ?? tmpdir(),
    limits: { ...defaultS3Limits, ...options.limits },
    keyOf: (id) => `${folder}${id}`,
  }
}

function checkEndpoint(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw refused(field, 'The address of an S3 server is http://HOST:PORT or https://HOST.')
  }
  if (url.username || url.password || url.search || url.hash) {
    throw refused(field, 'The address of an S3 server has no password and no query; give credentials apart.')
  }
  return url.href.replace(/\/$/, '')
}

function checkPrefix(text: string): string {
  const prefix = text.replaceAll(/^\/+|\/+$/g, '')
  // A part of a key is a file name on many servers.
  const good = prefix
    .split('/')
    .every((part) => /^[\w!'()*.-]{0,255}$/.test(part) && part !== '.' && part !== '..')
  if (!good || prefix.includes('//') || prefix.length > 512) {
    throw refused(
      'prefix',
      "A prefix is folders of letters, digits and -_.!*'() with single slashes between.",
    )
  }
  return prefix
}

const refused = (field: string, message: string): TuttiError =>
  new TuttiError('invalid_argument', message, { field })

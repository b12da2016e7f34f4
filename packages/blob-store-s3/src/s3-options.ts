import type { CrashPoint } from '@tutti/core'
import type { S3Limits } from './s3-limits.ts'

/** Where the blobs are. What is left out of region and credentials the SDK finds itself: environment, profile, role of the machine. */
export interface S3BlobStoreOptions {
  readonly bucket: string
  /** Folder of the bucket for everything of ours, such as `tutti/prod`; default none. Stores may share a bucket by it. */
  readonly prefix?: string
  /** `http(s)://host[:port]` of a server that is not AWS; default AWS's own in the region. No user name or password in it. */
  readonly endpoint?: string
  /** What signed requests of clients go to, where they reach the server by another name; default the endpoint. */
  readonly publicEndpoint?: string
  /** Default: what the SDK finds; with an endpoint `us-east-1`, which servers other than AWS take unless told otherwise. */
  readonly region?: string
  /** `host/bucket/key` in place of `bucket.host/key`; default true with an endpoint, as names below a host are rarely set up there. */
  readonly pathStyle?: boolean
  /** Default: the SDK's chain. */
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /**
   * Whether the server honours `If-None-Match: *`; default true. Without it the store looks first and then overwrites: the same bytes
   * under the same name, so nothing is lost but a transfer. False also for servers that refuse the header.
   */
  readonly conditionalWrites?: boolean
  /** For streams of more than a megabyte, whose hash has to be known before they are sent; default the system's. */
  readonly temporaryFolder?: string
  readonly limits?: Partial<S3Limits>
  readonly crashPoint?: CrashPoint
}

import type { S3Client } from '@aws-sdk/client-s3'

/**
 * Signs the hash of a body where the request has it already, in place of one that the SDK would compute again. A server that passes
 * over the checksum header still refuses other bytes than the signed ones.
 */
export function signPayloadHash(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (step) => {
      const { headers } = step.request as { headers: Record<string, string> }
      const sha256 = headers['x-amz-checksum-sha256']
      if (sha256) headers['x-amz-content-sha256'] = Buffer.from(sha256, 'base64').toString('hex')
      return next(step)
    },
    { step: 'build', name: 'signPayloadHash' },
  )
}

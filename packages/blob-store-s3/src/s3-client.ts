import { S3Client } from '@aws-sdk/client-s3'
import type { S3Settings } from './s3-settings.ts'

/** The SDK's client as this package needs it. */
export function createS3Client(settings: S3Settings, endpoint: string | undefined): S3Client {
  const { region, pathStyle, credentials, limits } = settings
  return new S3Client({
    ...(region && { region }),
    ...(endpoint && { endpoint }),
    ...(credentials && { credentials }),
    forcePathStyle: pathStyle,
    // Tries are counted here, where a lost answer is told from another's blob.
    maxAttempts: 1,
    // We bring our own SHA-256; a second checksum makes the SDK send pieces that some servers refuse.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: limits.connectMs, socketTimeout: limits.inactivityMs },
  })
}

import type { MessageInitShape } from '@bufbuild/protobuf'
import type { DoctorResponseSchema, GetConfigResponseSchema, GetSystemInfoResponseSchema } from '@tutti/proto'

/** What `tutti.v1.SystemService` answers; known only to whoever put the parts together. */
export interface SystemInformation {
  /** Which parts run, where, and why those. */
  info(signal: AbortSignal): Promise<MessageInitShape<typeof GetSystemInfoResponseSchema>>
  /** Tries everything that a run needs. */
  doctor(signal: AbortSignal): Promise<MessageInitShape<typeof DoctorResponseSchema>>
  /** Every setting with its value and origin; secrets masked. */
  configuration(signal: AbortSignal): Promise<MessageInitShape<typeof GetConfigResponseSchema>>
}

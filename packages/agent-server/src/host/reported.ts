import { constants } from 'node:os'
import type { HostExecExit } from '@tutti/agent'
import { isBlobId, limits, pathProblem, TuttiError, type BlobId } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import { z, type ZodType } from 'zod'
import type { CaptureSummary, GitStateReport } from '../port.ts'
import { contentHead, type WireChange } from '../wire-change.ts'

/**
 * A value of the link as what it must be. The agent can speak in the agent server's name (SECURITY.md), so nothing from there is
 * taken as it comes.
 *
 * @param what names it in the message, for example `a change`.
 * @throws TuttiError `data_loss` with the first field that is wrong.
 */
export function reported<Value>(schema: ZodType<Value>, value: unknown, what: string): Value {
  const { data, error } = schema.safeParse(value)
  if (!error) return data
  const field = error.issues[0]?.path.join('.') ?? ''
  throw new TuttiError(
    'data_loss',
    `The agent server reported ${what} that cannot be${field && ` (${field})`}.`,
    field ? { field } : {},
  )
}

export const execOutput = z.enum(['stdout', 'stderr'])
export const answer = z.boolean()
export const contentMessage = z.literal(contentHead)

/** As of waitpid: a code or a signal. */
export const execExit: ZodType<HostExecExit> = z
  .strictObject({
    code: z.int().min(0).max(255).nullable(),
    signal: z.exactOptional(z.enum(Object.keys(constants.signals))),
    timedOut: z.boolean(),
  })
  .refine(({ code, signal }) => (code === null) === (signal !== undefined))

const count = z.int().nonnegative()

const captureSummaryFields = z.strictObject({
  manifestDigest: z.string().regex(/^[0-9a-f]{64}$/),
  entries: count,
  changes: count,
})
export const captureSummary: ZodType<CaptureSummary> = captureSummaryFields

/** No path of Linux is longer, nor the target of a link, in bytes. */
const maxPathBytes = 4096
/** What a walk cannot look at because its path is too long has one name more. */
export const maxSkippedPathBytes = maxPathBytes + 256
/** Of a sparse file, where the file system allows it. */
const maxSkippedSize = 2 ** 63

const base64 = (maxBytes: number) =>
  z
    .base64()
    .min(1)
    .max(Math.ceil(maxBytes / 3) * 4)

/** Of a change any text that fits: one that no capture may have is refused by itself, and the rest is taken. */
const changedPath = z.base64().max(64 << 10)
const path = base64(maxPathBytes).refine((text) => pathProblem(Buffer.from(text, 'base64')) === undefined, {
  error: 'an unsafe path',
})
const blobId = z.custom<BlobId>((value) => typeof value === 'string' && isBlobId(value))
const file = {
  fileType: z.literal('file'),
  mode: z.enum(['100644', '100755']),
  size: count.max(limits.maxFileBytes),
  hash: blobId,
  ignored: z.exactOptional(z.literal(true)),
  ahead: z.exactOptional(z.literal(true)),
}
const symlink = {
  fileType: z.literal('symlink'),
  mode: z.literal('120000'),
  size: z.int().positive().max(maxPathBytes),
  hash: blobId,
  ignored: z.exactOptional(z.literal(true)),
}
const folder = { fileType: z.literal('dir'), mode: z.literal('040000') }
const created = { action: z.literal('created'), path: changedPath }
const modified = { action: z.literal('modified'), path: changedPath, base: blobId }

const maxWrong = 1000

/** What a hydration says, with paths as base64. */
export const hydrated = captureSummaryFields.extend({
  wrong: z.array(path).max(maxWrong),
  withoutSubmodules: z.array(path).max(maxWrong),
  withoutRepository: z.boolean(),
  times: z.strictObject({ clone: count, blobs: count, restore: count, scan: count }),
})

const change = z.discriminatedUnion('action', [
  // An empty folder that goes had no content.
  z.strictObject({
    action: z.literal('deleted'),
    path: changedPath,
    base: z.exactOptional(blobId),
    ignored: z.exactOptional(z.literal(true)),
  }),
  z.discriminatedUnion('fileType', [
    z.strictObject({ ...created, ...file }),
    z.strictObject({ ...created, ...symlink }),
    z.strictObject({ ...created, ...folder }),
  ]),
  z.discriminatedUnion('fileType', [
    z.strictObject({ ...modified, ...file }),
    z.strictObject({ ...modified, ...symlink }),
    z.strictObject({ ...modified, ...folder }),
  ]),
]) satisfies ZodType<WireChange>

const skipReasons = [
  'too_large',
  'special',
  'unsafe_name',
  'unreadable',
  'limit',
  'ignored',
  'repository',
] as const satisfies readonly FileSkipReason[]

const skipped = z.strictObject({
  path: base64(maxSkippedPathBytes).refine((text) => !Buffer.from(text, 'base64').includes(0)),
  reason: z.enum(skipReasons),
  size: z.number().nonnegative().max(maxSkippedSize).refine(Number.isInteger).optional(),
})

const objectId = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)
/** No ref of git is longer, in characters. */
const maxRefName = 4096

const gitState = z.strictObject({
  commit: objectId,
  onto: z.exactOptional(objectId),
  head: z.exactOptional(objectId),
  branch: z.exactOptional(z.string().startsWith('refs/').max(maxRefName)),
  commits: z.array(z.strictObject({ sha: objectId, message: z.string().max(1000) })).max(100),
  size: count.max(limits.maxGitStateBytes),
}) satisfies ZodType<GitStateReport>

/** A path of a sync, with the code of the file system's error. */
const unwritten = z.strictObject({ path, code: z.string().regex(/^E[A-Z0-9]{1,30}$/) })

/** One message of a capture that is not content. */
export const captureHead = z
  .strictObject({
    content: z.literal(true).optional(),
    change: change.optional(),
    skipped: skipped.optional(),
    gitState: gitState.optional(),
    unwritten: unwritten.optional(),
    summary: captureSummary.optional(),
  })
  .refine((head) => Object.values(head).filter((part) => part !== undefined).length === 1)

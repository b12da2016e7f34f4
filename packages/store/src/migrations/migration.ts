import type { CompiledQuery, Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** One step of the stored format, in the words of every SQL dialect. Never edited once released; run in one transaction. */
export interface Migration {
  readonly format: number
  statements(db: Kysely<Schema>): readonly { compile(): CompiledQuery }[]
}

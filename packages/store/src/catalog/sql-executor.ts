import { Kysely, type Compilable, type Dialect } from 'kysely'
import type { Schema } from '../schema.ts'

/** A compiled statement as it goes to the database. */
export interface SqlStatement {
  readonly sql: string
  readonly parameters: readonly SqlValue[]
}

export type SqlValue = string | number | null

export interface SqlResult {
  readonly rows: readonly unknown[]
  readonly changes: number
}

/** What the catalog needs from a database: statements come from `db`, which only builds and compiles. */
export interface SqlExecutor {
  readonly db: Kysely<Schema>
  /** One SELECT. */
  read<Row>(query: Compilable<Row>, signal: AbortSignal): Promise<readonly Row[]>
  /**
   * All statements in one serialisable, durable transaction; the outcome of each in order.
   * @throws TuttiError `already_exists` when a unique value is taken; nothing was stored then.
   */
  write(queries: readonly Compilable[], signal: AbortSignal): Promise<readonly SqlResult[]>
}

export function toStatement(query: Compilable): SqlStatement {
  const { sql, parameters } = query.compile()
  return { sql, parameters: parameters as readonly SqlValue[] }
}

/** A Kysely that builds and compiles statements of this dialect and has no connection. */
export const createQueryBuilder = (dialect: Dialect): Kysely<Schema> => new Kysely<Schema>({ dialect })

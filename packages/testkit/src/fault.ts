/** What a fault proxy does to one request. Bytes are counted in the body. */
export type Fault =
  /** The connection is reset before anything of the request is read. */
  | { readonly kind: 'refuse' }
  /** The server gets so many bytes of the request; then both connections are reset. */
  | { readonly kind: 'reset_request'; readonly afterBytes: number }
  /** The client gets so many bytes of the answer; then both connections are reset. */
  | { readonly kind: 'reset_answer'; readonly afterBytes: number }
  /** The request is taken, and nothing ever comes back. The server does not see it. */
  | { readonly kind: 'black_hole' }
  /** The client gets so many bytes of the answer, and then nothing more. */
  | { readonly kind: 'stall_answer'; readonly afterBytes: number }
  /** The request goes on when the promise resolves. */
  | { readonly kind: 'hold'; readonly until: Promise<unknown> }
  /** The proxy answers itself, with an error as S3 writes it; the server does not see the request. */
  | { readonly kind: 'error'; readonly status: number; readonly code: string }
  /** The client gets the whole answer twice on its connection. */
  | { readonly kind: 'duplicate_answer' }
  /** This byte of the request is another one when the server gets it. */
  | { readonly kind: 'corrupt_request'; readonly atByte: number }
  /** This byte of the answer is another one when the client gets it. */
  | { readonly kind: 'corrupt_answer'; readonly atByte: number }
  /** The server does what was asked and answers; the client's connection is reset in place of the answer. */
  | { readonly kind: 'lost_answer' }

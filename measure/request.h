// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stream of requests on a drive: what it costs, split into seek, rotation, transfer and overhead.
 *
 * DriveSim is a discrete simulation in virtual time: pieces are collected in a plug, merged and
 * split as the block layer does, queued, and served in the order in which elevator and drive would
 * choose them. The caller owns the clock: it submits, asks for the next completion, and lets it
 * happen; several parties can share one drive that way. Pure; times never run backwards.
 */
#pragma once

#include "measure/model.h"

typedef struct {
        guint64 requests; /* after merging and splitting */
        guint64 bytes;
        guint64 seeks; /* requests for which the arm moved */
        double seek_ms, rotation_ms, transfer_ms, overhead_ms;
        double total_ms; /* time in which the drive was busy */
} RequestCost;

/* What was asked for. A piece larger than the largest request is split into several. */
typedef struct {
        guint64 position_bytes, length_bytes;
        guint32 owner;  /* the caller's: a file, say */
        guint32 next;   /* next piece of the same request, or DRIVE_NO_PIECE */
        gboolean leads; /* its request begins with it, and was served */
        double done_ms; /* INFINITY until it is read */
        double seek_ms, rotation_ms, transfer_ms, overhead_ms; /* its part of the request's cost */
} DrivePiece;

#define DRIVE_NO_PIECE G_MAXUINT32

typedef struct DriveSim DriveSim;

/* `elevator` TRUE: the block layer sorts what waits (mq-deadline, bfq); FALSE: first come. */
DriveSim *drive_sim_new(const DiskModel *model, gboolean elevator);
void drive_sim_free(DriveSim *sim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DriveSim, drive_sim_free)

const DiskModel *drive_sim_model(const DriveSim *sim);

/* Adds a piece (length > 0) to the plug; returns its number. A piece of more than model->
 * max_request_bytes takes consecutive numbers, one for every max_request_bytes of it. */
guint32 drive_sim_add(DriveSim *sim, guint64 position_bytes, guint64 length_bytes, guint32 owner);

/* Queues what the plug holds. */
void drive_sim_unplug(DriveSim *sim, double now_ms);

/* Lets the drive take up waiting requests. To be called when all that is submitted by now_ms is
 * queued; harmless when the drive is busy. */
void drive_sim_start(DriveSim *sim, double now_ms);

/* When the next request in service is done; INFINITY when none is. */
double drive_sim_next_ms(const DriveSim *sim);
/* Completes that request. */
void drive_sim_finish(DriveSim *sim);

/* Requests queued or in service. */
guint drive_sim_outstanding(const DriveSim *sim);

/* INFINITY while the piece is not done. */
double drive_sim_done_ms(const DriveSim *sim, guint32 piece);
/* Of DrivePiece. */
const GArray *drive_sim_pieces(const DriveSim *sim);
const RequestCost *drive_sim_cost(const DriveSim *sim);

/* Serves all that waits from now_ms on; returns the time of the last completion. */
double drive_sim_drain(DriveSim *sim, double now_ms);

typedef struct {
        guint64 position_bytes, length_bytes;
} Request;

/* The cost of requests submitted in this order with queue_depth of them (at least 1) outstanding.
 */
void request_stream_cost(const DiskModel *model, const Request *requests, gsize n_requests,
                         guint queue_depth, gboolean elevator, RequestCost *ret);
